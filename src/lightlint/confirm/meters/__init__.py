"""What is recorded while the program runs: one module a meter, `install(session)` switches it on."""
