"""`benchlab-pair`: two commands measured in turn and judged, without a server.

It reads by the adapters and judges by the kernel that the server uses. It knows no Django: numpy
and scipy are all that it needs.
"""
