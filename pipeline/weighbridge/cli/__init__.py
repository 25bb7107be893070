"""The command line, on top of every room: `weighbridge`."""
