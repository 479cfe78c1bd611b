"""LL5: devices, memory, speed."""
