"""The walls of a bubblewrap sandbox, each in a module of its own."""
