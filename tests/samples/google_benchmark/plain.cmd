python b.py --benchmark_format=json --benchmark_min_time=0.02s (google-benchmark 1.9.5 of PyPI)
