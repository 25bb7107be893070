"""Why a figure is what it is, as a tree down to raw leaves."""
