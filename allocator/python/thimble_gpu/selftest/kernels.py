"""Three kernels as PTX, which the driver compiles for whatever GPU it finds.

Word i of a pattern is (i * 2654435761) XOR seed, modulo 2**32: no two words of a granule are equal,
so bytes from a wrong place never pass.
"""

import array
import ctypes

_FACTOR = 2654435761

# For Pascal, the oldest GPUs with virtual memory management, and all later ones.
PTX = """\
.version 5.0
.target sm_60
.address_size 64

// Writes the pattern to `count` words; thread t writes words t, t + threads, and so on.
.visible .entry thimble_fill(.param .u64 words, .param .u32 count, .param .u32 seed)
{
  .reg .pred %done;
  .reg .u32 %i, %end, %step, %block, %size, %seed, %value;
  .reg .u64 %base, %at;
  ld.param.u64 %base, [words];
  ld.param.u32 %end, [count];
  ld.param.u32 %seed, [seed];
  cvta.to.global.u64 %base, %base;
  mov.u32 %i, %tid.x;
  mov.u32 %block, %ctaid.x;
  mov.u32 %size, %ntid.x;
  mad.lo.u32 %i, %block, %size, %i;
  mov.u32 %step, %nctaid.x;
  mul.lo.u32 %step, %step, %size;
next:
  setp.ge.u32 %done, %i, %end;
  @%done ret;
  mul.lo.u32 %value, %i, 2654435761;
  xor.b32 %value, %value, %seed;
  mad.wide.u32 %at, %i, 4, %base;
  st.global.u32 [%at], %value;
  add.u32 %i, %i, %step;
  bra next;
}

// Adds the number of words that do not show the pattern to *wrong.
.visible .entry thimble_check(.param .u64 words, .param .u32 count, .param .u32 seed,
                              .param .u64 wrong)
{
  .reg .pred %done, %same;
  .reg .u32 %i, %end, %step, %block, %size, %seed, %value, %found;
  .reg .u64 %base, %at, %sum;
  ld.param.u64 %base, [words];
  ld.param.u32 %end, [count];
  ld.param.u32 %seed, [seed];
  ld.param.u64 %sum, [wrong];
  cvta.to.global.u64 %base, %base;
  cvta.to.global.u64 %sum, %sum;
  mov.u32 %i, %tid.x;
  mov.u32 %block, %ctaid.x;
  mov.u32 %size, %ntid.x;
  mad.lo.u32 %i, %block, %size, %i;
  mov.u32 %step, %nctaid.x;
  mul.lo.u32 %step, %step, %size;
next:
  setp.ge.u32 %done, %i, %end;
  @%done ret;
  mul.lo.u32 %value, %i, 2654435761;
  xor.b32 %value, %value, %seed;
  mad.wide.u32 %at, %i, 4, %base;
  ld.global.u32 %found, [%at];
  setp.eq.u32 %same, %found, %value;
  @!%same red.global.add.u32 [%sum], 1;
  add.u32 %i, %i, %step;
  bra next;
}

// Runs until *flag, in host memory, is not zero, but at most for `most` nanoseconds.
.visible .entry thimble_wait(.param .u64 flag, .param .u64 most)
{
  .reg .pred %over;
  .reg .u32 %value;
  .reg .u64 %flag, %most, %begin, %now;
  ld.param.u64 %flag, [flag];
  ld.param.u64 %most, [most];
  cvta.to.global.u64 %flag, %flag;
  mov.u64 %begin, %globaltimer;
again:
  ld.volatile.global.u32 %value, [%flag];
  setp.ne.u32 %over, %value, 0;
  @%over ret;
  mov.u64 %now, %globaltimer;
  sub.u64 %now, %now, %begin;
  setp.lt.u64 %over, %now, %most;
  @%over bra again;
  ret;
}
"""

_THREADS = 256


def pattern(count, seed):
    """The words that thimble_fill writes, as bytes."""
    return array.array("I", ((i * _FACTOR & 0xffffffff) ^ seed for i in range(count))).tobytes()


class Kernels:
    """The kernels in the current context. Compiled when the first one is launched."""

    def __init__(self, cuda, multiprocessors):
        self._cuda = cuda
        self._blocks = 4 * multiprocessors
        self._module = None
        self._functions = {}

    def fill(self, address, count, seed, stream=None):
        self._launch("thimble_fill", self._blocks, stream, ctypes.c_uint64(address),
                     ctypes.c_uint32(count), ctypes.c_uint32(seed))

    def check(self, address, count, seed, wrong, stream=None):
        self._launch("thimble_check", self._blocks, stream, ctypes.c_uint64(address),
                     ctypes.c_uint32(count), ctypes.c_uint32(seed), ctypes.c_uint64(wrong))

    def wait(self, flag, nanoseconds, stream):
        """One thread of one block: every other kernel has room beside it."""
        self._launch("thimble_wait", 1, stream, ctypes.c_uint64(flag),
                     ctypes.c_uint64(nanoseconds), threads=1)

    def close(self):
        if self._module is not None:
            self._cuda.cuModuleUnload(self._module)

    def _launch(self, name, blocks, stream, *values, threads=_THREADS):
        if self._module is None:
            self._module = self._cuda.number("cuModuleLoadData", PTX.encode(),
                                             kind=ctypes.c_void_p)
        if name not in self._functions:
            self._functions[name] = self._cuda.number(
                "cuModuleGetFunction", self._module, name.encode(), kind=ctypes.c_void_p)
        arguments = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
        self._cuda.cuLaunchKernel(self._functions[name], blocks, 1, 1, threads, 1, 1, 0, stream,
                                  arguments, None)
