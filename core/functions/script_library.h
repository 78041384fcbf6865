#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/functions/function.h"
#include "core/functions/schema_arguments.h"

namespace torch::jit {
struct Module;
}

// TorchScript that all workers know: functions from source text, and modules from files. Its
// results depend on its arguments only: it runs as written, without the optimizations for which
// LibTorch watches earlier runs, and without forks. It may not park, so custom operators that it
// calls may not either.
namespace rehearsal {

// A TorchScript module at its owner: the value of an RRef<ScriptModule>. Copies share one module.
//
//   RRef<ScriptModule> net = worker.remote_by_name<ScriptModule>("ps", "script::net");
//   at::Tensor y = net.rpc_sync(&ScriptModule::call, "forward",
//                               schema_arguments(x, kwarg("scale", 2))).toTensor();
//
// A registered function may also make one of a torch::jit::Module of its own, and return it; then
// register FunctionRegistry::script_modules. Its own code uses it through RRef::with_local.
class ScriptModule {
 public:
  // Throws std::invalid_argument if the module forks.
  explicit ScriptModule(const torch::jit::Module& module);

  // Throws RpcError (bad_arguments) if there is no such method, or the arguments do not fit it;
  // else what TorchScript throws, whose text has the lines of the source.
  [[nodiscard]] c10::IValue call(const std::string& method, const SchemaArguments& arguments);

  // By name, those of modules within it too: at the owner itself the tensors, elsewhere copies.
  [[nodiscard]] std::vector<std::pair<std::string, at::Tensor>> parameters() const;

  // For training or, false, for evaluation.
  void train(bool on);

  [[nodiscard]] const torch::jit::Module& module() const { return *module_; }

 private:
  std::shared_ptr<torch::jit::Module> module_;
};

// The functions that FunctionRegistry::script registers: a function script::name.f for each f that
// is defined at the outermost level of the source. Throws std::invalid_argument with the compiler's
// text.
[[nodiscard]] std::vector<Function> compile_script(const std::string& name,
                                                   const std::string& source);

// The function that FunctionRegistry::script_file registers: the function script::name, which makes
// an instance of the module that the bytes of a file hold. Throws std::invalid_argument.
[[nodiscard]] Function load_script(const std::string& name, const std::string& bytes);

}  // namespace rehearsal
