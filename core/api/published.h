#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <typeinfo>

#include "core/api/caller.h"
#include "core/api/rref_handle.h"

// References by name: what WorkerAccess::publish and lookup are made of.
namespace rehearsal {

// A reference and the type of its value, as `type_name` gives it.
struct NamedReference {
  std::shared_ptr<RRefHandle> handle;
  std::string type;
};

template <>
struct Value<NamedReference> {
  static void write(ValueWriter& writer, const NamedReference& named) {
    writer.handle(named.handle);
    writer.text(named.type);
  }
  static NamedReference read(ValueReader& reader) {
    NamedReference named;
    named.handle = reader.handle();
    named.type = reader.text();
    return named;
  }
  static void sign(WireSignature& signature) { signature += "named reference"; }
};

// The bytes of a published name, at most. None longer is published, looked up or taken back
// (bad_arguments).
inline constexpr size_t kPublishedNameMax = size_t{1} << 20;

// The function that every program has: the reference of a name, at the worker that publishes it.
void register_published(FunctionRegistry& registry);

// At this worker. Both park for a moment and throw RpcError: see WorkerAccess.
void publish(const Caller& caller, const std::string& name, NamedReference reference);
void unpublish(const Caller& caller, const std::string& name);

// Parks until `worker` is there and has published the name. Throws RpcError: see WorkerAccess.
[[nodiscard]] NamedReference look_up(const Caller& caller, const Target& worker,
                                     const std::string& name, const std::type_info& type,
                                     Timeout timeout);

}  // namespace rehearsal
