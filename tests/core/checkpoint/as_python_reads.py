"""Prints as JSON what torch.load(FILE, weights_only=True) reads.

Usage: as_python_reads.py FOLDER FILE

FOLDER is that of the Python package torch. Of it the unpickler is taken that decides what a file
may name; the rest of PyTorch is replaced by stubs, since it needs libraries that LibTorch does
without. A tensor is told by its type, its sizes and its values.
"""

import importlib.util
import io
import json
import struct
import sys
import types
import zipfile

FORMATS = {"FloatStorage": "f", "DoubleStorage": "d", "LongStorage": "q", "IntStorage": "i",
           "BoolStorage": "?", "HalfStorage": "e"}


class Stub(types.ModuleType):
    """A module in which every name is a class."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        made = type(name, (), {"__module__": self.__name__})
        setattr(self, name, made)
        return made


class StorageType:
    def __init__(self, name):
        self.name = name


def _rebuild_tensor_v2(storage, offset, sizes, strides, requires_grad, hooks):
    kind, data = storage
    code = FORMATS[kind]
    width = struct.calcsize(code)
    places = [offset]
    for size, stride in zip(sizes, strides):
        places = [place + i * stride for place in places for i in range(size)]
    values = [struct.unpack_from("<" + code, data, place * width)[0] for place in places]
    return {"tensor": kind.removesuffix("Storage"), "sizes": list(sizes), "values": values}


def stubs():
    torch = Stub("torch")
    for name in ("_utils", "storage", "serialization", "nn", "_tensor"):
        setattr(torch, name, Stub("torch." + name))
    torch._tensor_classes = set()
    torch._storage_classes = [type(name, (), {"__module__": "torch"}) for name in FORMATS]
    torch.storage._dtype_to_storage_type_map = dict
    torch.storage._new_dtypes = list
    torch.serialization.StorageType = StorageType
    torch.serialization._maybe_decode_ascii = (
        lambda text: text.decode("ascii") if isinstance(text, bytes) else text)
    torch._utils._rebuild_tensor_v2 = _rebuild_tensor_v2
    torch._utils._sparse_tensors_to_validate = []
    torch._utils.IMPORT_MAPPING = {}
    torch._utils.NAME_MAPPING = {}
    sys.modules["torch"] = torch
    sys.modules["torch._utils"] = torch._utils


def read(folder, file):
    stubs()
    spec = importlib.util.spec_from_file_location(
        "weights_only_unpickler", folder + "/_weights_only_unpickler.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with zipfile.ZipFile(file) as archive:
        (pickle,) = [name for name in archive.namelist() if name.endswith("/data.pkl")]
        within = pickle.removesuffix("data.pkl")
        assert within + "version" in archive.namelist(), "no version, as torch.load wants it"
        unpickler = module.Unpickler(io.BytesIO(archive.read(pickle)), encoding="utf-8")
        unpickler.persistent_load = lambda saved: (
            saved[1].name, archive.read(within + "data/" + saved[2]))
        return unpickler.load()


if __name__ == "__main__":
    print(json.dumps(read(sys.argv[1], sys.argv[2]), sort_keys=True))
