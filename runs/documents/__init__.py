"""Reports, scripts and exports of campaigns and comparisons."""
