"""What composes the rooms: an installation, a night's work on it, and the demonstration."""
