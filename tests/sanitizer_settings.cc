// The sanitizers of a test's program ask these functions for their settings; without sanitizers
// nobody calls them. ASAN_OPTIONS and UBSAN_OPTIONS override them.
extern "C" {

// Of too much memory LibTorch makes an exception, as without the sanitizer.
__attribute__((visibility("default"))) const char* __asan_default_options() {
  return "detect_stack_use_after_return=0:quarantine_size_mb=16:allocator_may_return_null=1";
}

__attribute__((visibility("default"))) const char* __ubsan_default_options() {
  return "print_stacktrace=1";
}
}
