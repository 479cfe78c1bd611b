"""What is kept between rounds of training."""
