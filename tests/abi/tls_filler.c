/* A library that takes 64 bytes of the process's static thread-local storage. */
__attribute__((tls_model("initial-exec"))) __thread char tls_filler[64];

char* TlsFiller(void) { return tls_filler; }
