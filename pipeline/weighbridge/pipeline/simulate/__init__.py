"""A believable quarter of traffic with known faults, as sealed segments of an agent and of a usage log."""
