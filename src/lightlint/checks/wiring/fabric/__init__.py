"""Lightning Fabric."""
