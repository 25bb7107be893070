"""APIs a probe can speak: one module each, declaring `API`."""
