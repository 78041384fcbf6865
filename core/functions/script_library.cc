#include "core/functions/script_library.h"

#include <c10/util/Exception.h>
#include <torch/csrc/jit/api/compilation_unit.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/frontend/resolver.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/serialization/import.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <stdexcept>
#include <string_view>

namespace rehearsal {
namespace {

using torch::jit::CompilationUnit;

[[noreturn]] void refuse(const std::string& name, const std::string& why) {
  throw std::invalid_argument("the script '" + name + "' " + why);
}

// Runs what reads a script; LibTorch's texts without its backtraces.
template <class F>
auto read_script(const std::string& name, const std::string& failure, F read) {
  try {
    return read();
  } catch (const c10::Error& thrown) {
    refuse(name, failure + ": " + thrown.what_without_backtrace());
  } catch (const std::exception& thrown) {
    refuse(name, failure + ": " + thrown.what());
  }
}

// ---- what may not be in it --------------------------------------------------

// Tasks of their own run when they like, and waiting for them would hold up a thread.
bool is_concurrent(const torch::jit::Node& node) {
  static constexpr std::array<std::string_view, 7> kKinds = {
      "prim::fork",      "prim::awaitable", "prim::awaitable_wait",
      "prim::rpc_async", "prim::rpc_sync",  "prim::rpc_remote",
      "aten::wait"};
  return std::ranges::find(kKinds, std::string_view(node.kind().toQualString())) != kKinds.end();
}

bool has_concurrency(const torch::jit::Block& block) {
  for (const torch::jit::Node* node : block.nodes()) {
    if (is_concurrent(*node)) return true;
    for (const torch::jit::Block* inner : node->blocks())
      if (has_concurrency(*inner)) return true;
  }
  return false;
}

void check_functions(const std::string& name, const CompilationUnit& unit) {
  for (torch::jit::Function* function : unit.get_functions()) {
    torch::jit::GraphFunction* graph = torch::jit::tryToGraphFunction(*function);
    if (graph == nullptr) continue;
    graph->ensure_defined();
    if (has_concurrency(*graph->graph()->block()))
      refuse(name, "forks or waits in '" + function->name() +
                       "': a script runs on the stack of its call alone");
  }
}

// ---- running ----------------------------------------------------------------

// The schema of `function` begins with a module's self if `arguments` do.
c10::IValue run(torch::jit::Function& function, SchemaArguments arguments,
                const std::string& name) {
  Result<Arranged> arranged = arrange(function.getSchema(), std::move(arguments), name);
  std::vector<c10::IValue> stack = std::move(arranged).or_throw().stack;
  const torch::jit::GraphOptimizerEnabledGuard as_written(false);
  function.run(stack);
  return packed_results(std::move(stack));
}

}  // namespace

// ---- modules ----------------------------------------------------------------

ScriptModule::ScriptModule(const torch::jit::Module& module)
    : module_(std::make_shared<torch::jit::Module>(module)) {
  check_functions(module.type()->name()->name(), *module._ivalue()->compilation_unit());
}

c10::IValue ScriptModule::call(const std::string& method, const SchemaArguments& arguments) {
  std::string known;
  for (const torch::jit::Method& candidate : module_->get_methods()) {
    if (candidate.name() != method) {
      known += " " + candidate.name();
      continue;
    }
    SchemaArguments with_self = arguments;
    with_self.positional.insert(with_self.positional.begin(), module_->_ivalue());
    return run(candidate.function(), std::move(with_self), method);
  }
  throw RpcError({.kind = ErrorKind::bad_arguments,
                  .text = "the script module has no such method; there are:" + known,
                  .function = method});
}

std::vector<std::pair<std::string, at::Tensor>> ScriptModule::parameters() const {
  std::vector<std::pair<std::string, at::Tensor>> parameters;
  for (const auto& parameter : module_->named_parameters())
    parameters.emplace_back(parameter.name, parameter.value);
  return parameters;
}

void ScriptModule::train(bool on) { module_->train(on); }

// ---- registering ------------------------------------------------------------

std::vector<Function> compile_script(const std::string& name, const std::string& source) {
  auto unit = std::make_shared<CompilationUnit>();
  read_script(name, "does not compile",
              [&] { unit->define(std::nullopt, source, torch::jit::nativeResolver(), nullptr); });
  check_functions(name, *unit);
  std::vector<Function> functions;
  for (torch::jit::Function* compiled : unit->get_functions()) {
    Function function;
    function.name = "script::" + name + "." + compiled->name();
    function.parameters = c10::toString(compiled->getSchema());
    function.result = detail::sign_result<c10::IValue>();
    function.takes_schema = true;
    function.invoke = [unit, compiled, full = function.name](const Invocation& invocation) {
      return Returned(HeldValue::of<c10::IValue>(
          run(*compiled, read_schema_arguments(invocation.arguments), full)));
    };
    functions.push_back(std::move(function));
  }
  if (functions.empty()) refuse(name, "defines no function");
  return functions;
}

Function load_script(const std::string& name, const std::string& bytes) {
  auto saved = read_script(name, "cannot be loaded", [&] {
    std::istringstream in(bytes);
    return std::make_shared<const torch::jit::Module>(torch::jit::load(in, c10::kCPU));
  });
  check_functions(name, *saved->_ivalue()->compilation_unit());
  Function function;
  function.name = "script::" + name;
  function.invoke = [saved](const Invocation& invocation) {
    ValueReader(invocation.arguments).finish();
    return Returned(HeldValue::of<ScriptModule>(ScriptModule(saved->deepcopy())));
  };
  return function;
}

}  // namespace rehearsal
