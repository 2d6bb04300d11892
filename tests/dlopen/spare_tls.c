/* A library whose only variable takes 64 bytes of the thread-local storage that the loader has set aside for
 * libraries opened while a program runs: loading enough copies under different names uses it up. */
__attribute__((visibility("default"), tls_model("initial-exec"))) __thread char spare[64];

__attribute__((visibility("default"))) char* spare_address(void) { return spare; }
