"""Who optimizes a LightningModule, and manual optimisation."""
