"""From Python source to IR (spec language 3 to 5)."""
