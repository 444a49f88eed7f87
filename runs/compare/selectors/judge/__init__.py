"""How series and revisions differ, and how surely."""
