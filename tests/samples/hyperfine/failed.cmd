hyperfine -N -r 3 --ignore-failure --export-json failed.json false
