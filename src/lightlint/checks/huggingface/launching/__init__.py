"""Training loops: written by hand with Accelerate and PEFT, and what a Trainer needs to run its own."""
