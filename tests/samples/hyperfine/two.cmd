hyperfine -N -r 3 --export-json two.json 'sleep 0.01' 'sleep 0.02'
