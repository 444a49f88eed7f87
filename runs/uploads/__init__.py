"""Results from elsewhere: read, decided, stored, told."""
