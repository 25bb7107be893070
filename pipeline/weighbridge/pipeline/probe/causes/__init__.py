"""Why weights part, one module each, declaring `CAUSE`."""
