"""What vouches for a figure: signed chains, and their verification."""
