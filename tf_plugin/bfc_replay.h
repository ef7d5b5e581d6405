/* libthimble_bfc.so: how much memory TensorFlow's own allocator would have needed.
 *
 * A library of its own, because it links TensorFlow and nothing else of Thimble. The caller loads
 * TensorFlow's framework library first. Use it in a process that does not train: BFC's bookkeeping
 * takes 16 MB of host memory per GB of device that it models.
 */
#ifndef TF_PLUGIN_BFC_REPLAY_H_
#define TF_PLUGIN_BFC_REPLAY_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The smallest memory, in steps of 2 MiB, in which TensorFlow's allocator, set up as for a GPU
 * without memory growth, serves the text trace at `path` (the tool `log` of thimble_offline.h
 * writes one) from its beginning to its end. Returns NULL or what is wrong; the text stays valid.
 * */
const char* thimble_bfc_fit(const char* path, uint64_t* bytes);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TF_PLUGIN_BFC_REPLAY_H_ */
