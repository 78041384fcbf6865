#include "command_line/debugger.h"

#include <filesystem>

#include "command_line/run_settings.h"

namespace rehearsal::command_line {

std::string debugger() {
  namespace fs = std::filesystem;
  std::error_code failed;
  const fs::path program = fs::read_symlink("/proc/self/exe", failed);
  const fs::path installed =
      program.parent_path().parent_path() / "share" / "rehearsal" / "rehearsal-gdb.py";
  for (const fs::path& script : {installed, fs::path(REHEARSAL_GDB_SCRIPT)}) {
    if (!fs::exists(script, failed)) continue;
    const std::string here = fs::proximate(script, failed).string();
    const bool is_near = !failed && here.size() < script.string().size();
    return shell_command("gdb", {"-x", is_near ? here : script.string()});
  }
  return "gdb";
}

}  // namespace rehearsal::command_line
