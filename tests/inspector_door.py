"""The door of the inspector under test."""

from hiermem_core.inspector.guarding import Door

DOOR = Door("a-token-of-this-test", 8765)
HOME = f"http://127.0.0.1:{DOOR.port}/{DOOR.token}"
OWN = {"origin": f"http://127.0.0.1:{DOOR.port}", "sec-fetch-site": "same-origin"}
SCRIPT = "<script>document.title='ran'</script>"
IMAGE = """<img src=x onerror="document.title='ran'">"""
