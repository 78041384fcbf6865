// `fuzz TARGET [FLAGS OF LIBFUZZER] [FOLDERS AND FILES]`: goes on from the target's own first
// inputs, from those that are kept in tests/fuzz/corpus/TARGET, and from those that earlier calls
// left in build/fuzz/TARGET, where it leaves new ones. An input that breaks a promise is left in
// build/fuzz/TARGET-crash-…; it belongs into the corpus when its cause is mended.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "tests/fuzz/target.h"

namespace rehearsal::fuzz {
namespace {

const Target* chosen = nullptr;
std::vector<std::string> words;
std::vector<char*> arguments;

[[noreturn]] void explain() {
  std::cerr << "Usage: fuzz TARGET [FLAGS OF LIBFUZZER] [FOLDERS AND FILES]\n\n";
  for (const Target& target : targets())
    std::cerr << "  " << target.name << std::string(14 - target.name.size(), ' ') << target.about
              << "\n";
  std::cerr
      << "\nREHEARSAL_FUZZ_SECONDS=N goes on for N seconds (default 5) unless files are named "
         "or a\nflag says how long. build/asan/fuzz frame -max_total_time=600\n";
  std::exit(2);
}

bool limits_itself(const std::string& word) {
  return word.starts_with("-max_total_time=") || word.starts_with("-runs=") ||
         word.starts_with("-help") || word.starts_with("-merge=");
}

std::string folder_of_work(const Target& target) {
  const std::filesystem::path folder = std::filesystem::path("build/fuzz") / target.name;
  std::filesystem::create_directories(folder);
  size_t number = 0;
  for (const std::string& input : target.first_inputs())
    std::ofstream(folder / ("first-" + std::to_string(++number)), std::ios::binary) << input;
  return folder;
}

void choose(int& count, char**& given) {
  if (count < 2) explain();
  for (const Target& target : targets())
    if (target.name == given[1]) chosen = &target;
  if (chosen == nullptr) explain();
  const char* said = std::getenv("REHEARSAL_FUZZ_SECONDS");
  const std::string seconds = said == nullptr ? "5" : said;
  words = {given[0],
           "-artifact_prefix=build/fuzz/" + chosen->name + "-",
           "-timeout=20",
           "-rss_limit_mb=4096",
           "-malloc_limit_mb=1024",
           "-verbosity=0",
           "-print_final_stats=1",
           "-detect_leaks=0"};
  bool limited = false;
  bool named = false;
  for (int i = 2; i < count; ++i) {
    words.emplace_back(given[i]);
    limited |= limits_itself(words.back());
    named |= !words.back().starts_with("-");
  }
  if (!named) {
    if (!limited) words.push_back("-max_total_time=" + seconds);
    words.push_back(folder_of_work(*chosen));
    const std::string kept = "tests/fuzz/corpus/" + chosen->name;
    if (std::filesystem::is_directory(kept)) words.push_back(kept);
  }
  for (std::string& word : words) arguments.push_back(word.data());
  count = static_cast<int>(arguments.size());
  arguments.push_back(nullptr);
  given = arguments.data();
}

}  // namespace
}  // namespace rehearsal::fuzz

// LibTorch's reader of archives loses what it has begun when it throws.
extern "C" const char* __lsan_default_suppressions() { return "leak:libtorch_cpu.so"; }

// The names that libFuzzer looks for.
extern "C" int LLVMFuzzerInitialize(int* count, char*** given) {
  rehearsal::fuzz::choose(*count, *given);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  rehearsal::fuzz::chosen->read({data, size});
  return 0;
}
