"""What is recorded beside the load: profiles, plans, counts of instructions, times."""
