hyperfine -N -r 3 -P n 1 2 --export-json parameters.json 'sleep 0.0{n}'
