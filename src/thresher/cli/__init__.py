"""The program: options, what is shown, what is complained of, and a file for each command."""
