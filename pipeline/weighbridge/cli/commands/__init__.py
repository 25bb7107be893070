"""The verbs: each module declares one COMMAND. Rooms of the pipeline are imported inside the functions only."""
