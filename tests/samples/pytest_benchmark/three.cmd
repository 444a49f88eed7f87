python -m pytest pb --benchmark-json=three.json --benchmark-max-time=0.05 (the lists of single times are left out)
