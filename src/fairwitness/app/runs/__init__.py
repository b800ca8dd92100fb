"""What a person does with runs: begin, drive, resume, answer, cancel, roll back, replay."""
