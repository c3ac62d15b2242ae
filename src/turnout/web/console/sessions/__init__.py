"""How sessions end before their time, and how many wrong keys one address may try."""
