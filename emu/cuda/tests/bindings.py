"""Memory, streams, events, a module, launches and graphs through the Python bindings of CUDA, as they are."""

import ctypes
import pathlib

from cuda.bindings import driver


def ok(answer):
    """What a call gives besides its code, which must be that of success."""
    code, *rest = answer
    assert code == driver.CUresult.CUDA_SUCCESS, code
    return rest[0] if len(rest) == 1 else rest


def text(answer):
    return answer.split(b"\0")[0].decode()


COUNT = 64
BYTES = 4 * COUNT
Words = ctypes.c_uint32 * COUNT

ok(driver.cuInit(0))
assert ok(driver.cuDeviceGetCount()) == 2
assert ok(driver.cuDriverGetVersion()) == 13000
device = ok(driver.cuDeviceGet(1))
assert text(ok(driver.cuDeviceGetName(64, device))) == "EMULATED H200 (h200-nvlink)"
major = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
assert ok(driver.cuDeviceGetAttribute(major, device)) == 9
context = ok(driver.cuDevicePrimaryCtxRetain(device))
ok(driver.cuCtxSetCurrent(context))
free, total = ok(driver.cuMemGetInfo())

# Memory, a stream, a module of PTX text, a launch between two events.
ptx = pathlib.Path(__file__).with_name("library") / "guest" / "kernels.ptx"
module = ok(driver.cuModuleLoadData(ptx.read_bytes() + b"\0"))
add = ok(driver.cuModuleGetFunction(module, b"add"))
words = Words(*range(COUNT))
at = ok(driver.cuMemAlloc(BYTES))
stream = ok(driver.cuStreamCreate(driver.CUstream_flags.CU_STREAM_NON_BLOCKING))
begin, end = (ok(driver.cuEventCreate(0)) for _ in range(2))


def launch(number):
    arguments = ((at, number), (None, ctypes.c_uint32))
    ok(driver.cuLaunchKernel(add, 1, 1, 1, COUNT, 1, 1, 0, stream, arguments, 0))


def read():
    found = Words()
    ok(driver.cuMemcpyDtoHAsync(ctypes.addressof(found), at, BYTES, stream))
    ok(driver.cuStreamSynchronize(stream))
    return list(found)


ok(driver.cuMemcpyHtoDAsync(at, ctypes.addressof(words), BYTES, stream))
ok(driver.cuEventRecord(begin, stream))
launch(7)
ok(driver.cuEventRecord(end, stream))
ok(driver.cuEventSynchronize(end))
assert ok(driver.cuEventElapsedTime(begin, end)) >= 0
assert read() == [n + 7 for n in range(COUNT)]

# A graph: captured, looked at, launched twice.
ok(driver.cuStreamBeginCapture(stream, driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL))
ok(driver.cuMemsetD32Async(at, 100, COUNT, stream))
launch(1)
launch(2)
graph = ok(driver.cuStreamEndCapture(stream))
nodes, count = ok(driver.cuGraphGetNodes(graph, 3))
assert count == 3
kinds = [ok(driver.cuGraphNodeGetType(node)) for node in nodes]
Kind = driver.CUgraphNodeType
assert kinds == [Kind.CU_GRAPH_NODE_TYPE_MEMSET, Kind.CU_GRAPH_NODE_TYPE_KERNEL, Kind.CU_GRAPH_NODE_TYPE_KERNEL], kinds
assert read() == [n + 7 for n in range(COUNT)], "a capture runs nothing"
executable = ok(driver.cuGraphInstantiate(graph, 0))
for _ in range(2):
    ok(driver.cuGraphLaunch(executable, stream))
    launch(10)
    assert read() == [113] * COUNT

# What is not covered is absent to who asks for functions by symbol and version.
try:
    driver.cuMemAllocManaged(BYTES, 1)
    raise SystemExit("managed memory, though there is none")
except RuntimeError as error:
    assert "not found" in str(error), error

ok(driver.cuGraphExecDestroy(executable))
ok(driver.cuGraphDestroy(graph))
for event in (begin, end):
    ok(driver.cuEventDestroy(event))
ok(driver.cuStreamDestroy(stream))
ok(driver.cuMemFree(at))
ok(driver.cuModuleUnload(module))
assert ok(driver.cuMemGetInfo()) == [free, total]
ok(driver.cuDevicePrimaryCtxRelease(device))
print("all right")
