"""What an expression holds: constructors, containers, dicts, strings and arguments, followed through names."""
