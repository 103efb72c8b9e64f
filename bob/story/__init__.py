"""The story of a crash state: requests to the disk, with times and fates, as the time line of a witness."""
