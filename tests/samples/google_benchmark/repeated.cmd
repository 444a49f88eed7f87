python b.py --benchmark_format=json --benchmark_min_time=0.02s --benchmark_repetitions=3
