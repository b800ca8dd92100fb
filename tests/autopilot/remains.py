from pathlib import Path
from feature.remains import Content
def content_of(repository: Path, run_id: str) -> Content: raise NotImplementedError
def assert_clean(repository: Path, run_id: str) -> None: ...
