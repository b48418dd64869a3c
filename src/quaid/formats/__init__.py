"""File formats: markdown, org, front matter, transcripts, settings of other programs."""
