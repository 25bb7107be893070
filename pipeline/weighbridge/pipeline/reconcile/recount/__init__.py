"""How far reports are from counting the text again, as a rule, and when that rule moves."""
