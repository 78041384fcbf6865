#include "real_net/worker/placement.h"

#include <charconv>
#include <cstdlib>

namespace rehearsal::real {
namespace {

constexpr uint16_t kDefaultPort = 29500;
constexpr uint32_t kSlurmPorts = 10'000;  // ports of jobs are 20000 … 29999

std::optional<uint32_t> to_number(const std::string& text) {
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// Reads the variables of one launcher and keeps the first thing that is wrong with them.
class Reader {
 public:
  explicit Reader(const Environment& environment) : environment_(environment) {}

  [[nodiscard]] bool has(const std::string& name) const { return environment_(name).has_value(); }
  [[nodiscard]] std::string text(const std::string& name) const {
    return environment_(name).value_or("");
  }
  std::optional<uint32_t> number(const std::string& name) {
    const std::optional<std::string> value = environment_(name);
    if (!value) return std::nullopt;
    const std::optional<uint32_t> number = to_number(*value);
    if (!number) fail(name + " is '" + *value + "', which is not a number");
    return number;
  }
  uint32_t needed(const std::string& name) {
    if (!has(name)) fail(name + " is not set");
    return number(name).value_or(0);
  }
  uint16_t port(const std::string& name, uint16_t otherwise) {
    const uint32_t value = number(name).value_or(otherwise);
    if (value == 0 || value > UINT16_MAX) fail(name + " is not a port");
    return static_cast<uint16_t>(value);
  }
  void fail(std::string text) {
    if (!error_) error_ = wrong_arguments(std::move(text));
  }
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

 private:
  const Environment& environment_;
  std::optional<Error> error_;
};

Address master_address(Reader& reader, const std::string& otherwise, uint16_t port) {
  const bool known = reader.has("MASTER_ADDR") || !otherwise.empty();
  if (!known) reader.fail("MASTER_ADDR is not set: it names the host of rank 0");
  return {
      .host = reader.has("MASTER_ADDR") ? without_brackets(reader.text("MASTER_ADDR")) : otherwise,
      .port = reader.port("MASTER_PORT", port)};
}

Placement from_torchrun(Reader& reader) {
  Placement placement;
  placement.launcher = "torchrun";
  placement.rank = reader.needed("RANK");
  placement.world_size = reader.needed("WORLD_SIZE");
  placement.master = master_address(reader, "", kDefaultPort);
  const std::string agent = reader.text("TORCHELASTIC_USE_AGENT_STORE");
  placement.agent_serves = agent == "True" || agent == "true" || agent == "1";
  placement.run =
      reader.text("TORCHELASTIC_RUN_ID") + "/" + reader.text("TORCHELASTIC_RESTART_COUNT");
  return placement;
}

Placement from_slurm(Reader& reader) {
  Placement placement;
  placement.launcher = "Slurm";
  placement.rank = reader.needed("SLURM_PROCID");
  placement.world_size = reader.needed("SLURM_NTASKS");
  const uint32_t job = reader.number("SLURM_JOB_ID").value_or(0);
  std::string nodes = reader.text("SLURM_STEP_NODELIST");
  if (nodes.empty()) nodes = reader.text("SLURM_JOB_NODELIST");
  placement.master = master_address(reader, first_slurm_host(nodes),
                                    static_cast<uint16_t>(20'000 + job % kSlurmPorts));
  placement.run = std::to_string(job) + "/" + reader.text("SLURM_STEP_ID");
  return placement;
}

Placement from_mpi(Reader& reader) {
  Placement placement;
  placement.launcher = "MPI";
  if (reader.has("OMPI_COMM_WORLD_RANK")) {
    placement.rank = reader.needed("OMPI_COMM_WORLD_RANK");
    placement.world_size = reader.number("OMPI_COMM_WORLD_SIZE");
  } else if (reader.has("PMI_RANK")) {
    placement.rank = reader.needed("PMI_RANK");
    placement.world_size = reader.number("PMI_SIZE");
  } else {
    placement.rank = reader.needed("PMIX_RANK");
  }
  if (!placement.world_size) placement.world_size = reader.number("WORLD_SIZE");
  placement.run =
      reader.text(reader.has("PMIX_NAMESPACE") ? "PMIX_NAMESPACE" : "OMPI_MCA_ess_base_jobid");
  const bool one_host =
      reader.has("OMPI_COMM_WORLD_LOCAL_SIZE") &&
      reader.text("OMPI_COMM_WORLD_LOCAL_SIZE") == reader.text("OMPI_COMM_WORLD_SIZE");
  placement.master = master_address(reader, one_host ? "127.0.0.1" : "", kDefaultPort);
  return placement;
}

Placement from_kubernetes(Reader& reader) {
  Placement placement;
  placement.launcher = "Kubernetes";
  placement.rank = reader.needed("JOB_COMPLETION_INDEX");
  placement.world_size = reader.number("WORLD_SIZE");
  placement.master = master_address(reader, "", kDefaultPort);
  return placement;
}

Placement from_plain(Reader& reader) {
  Placement placement;
  placement.launcher = "environment";
  placement.rank = reader.needed("RANK");
  placement.world_size = reader.number("WORLD_SIZE");
  const bool alone = placement.world_size == 1u;
  placement.master = master_address(reader, alone ? "127.0.0.1" : "", kDefaultPort);
  return placement;
}

bool launched_by_mpi(const Reader& reader) {
  return reader.has("OMPI_COMM_WORLD_RANK") || reader.has("PMI_RANK") || reader.has("PMIX_RANK");
}

// Overrides where the workers meet. Only the flags know of files.
void apply_rendezvous(const std::string& url, Placement& placement, Reader& reader) {
  const std::string tcp = "tcp://";
  const std::string file = "file://";
  if (url == "env://") return;
  placement.agent_serves = false;
  if (url.starts_with(file) && url.size() > file.size()) {
    placement.file = url.substr(file.size());
    return;
  }
  const size_t colon = url.rfind(':');
  const std::optional<uint32_t> port =
      url.starts_with(tcp) && colon > tcp.size() ? to_number(url.substr(colon + 1)) : std::nullopt;
  if (!port || *port == 0 || *port > UINT16_MAX)
    return reader.fail("rendezvous '" + url + "' is none of env://, tcp://host:port, file:///path");
  const std::string host = url.substr(tcp.size(), colon - tcp.size());
  placement.master = {.host = without_brackets(host), .port = static_cast<uint16_t>(*port)};
}

Placement from_flags(const PlacementFlags& flags, Reader& reader) {
  Placement placement;
  placement.launcher = "flags";
  placement.rank = *flags.rank;
  placement.world_size = flags.world_size;
  const bool meets_elsewhere = flags.rendezvous && *flags.rendezvous != "env://";
  if (!meets_elsewhere) placement.master = master_address(reader, "127.0.0.1", kDefaultPort);
  return placement;
}

// A run that its user has named. torchrun's attempts are told apart all the same.
std::string named_run(const PlacementFlags& flags, const Reader& reader) {
  const std::string id = flags.run_id.empty() ? reader.text("REHEARSAL_RUN_ID") : flags.run_id;
  const bool counted = reader.has("TORCHELASTIC_RESTART_COUNT") && !flags.rank;
  return id.empty() || !counted ? id : id + "/" + reader.text("TORCHELASTIC_RESTART_COUNT");
}

Placement from_launcher(Reader& reader) {
  if (reader.has("TORCHELASTIC_RUN_ID")) return from_torchrun(reader);
  if (reader.has("SLURM_PROCID")) return from_slurm(reader);
  if (launched_by_mpi(reader)) return from_mpi(reader);
  if (reader.has("JOB_COMPLETION_INDEX")) return from_kubernetes(reader);
  return from_plain(reader);
}

}  // namespace

std::optional<std::string> process_environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr || *value == '\0') return std::nullopt;
  return std::string(value);
}

std::optional<ManyRanks> launched_as_one_of_many(const Environment& environment) {
  Reader reader(environment);
  ManyRanks many;
  if (reader.has("TORCHELASTIC_RUN_ID")) {
    many = {"torchrun", reader.number("WORLD_SIZE").value_or(0)};
  } else if (reader.has("SLURM_STEP_NUM_TASKS")) {  // a batch script itself has none
    many = {"srun", reader.number("SLURM_STEP_NUM_TASKS").value_or(0)};
  } else if (reader.has("OMPI_COMM_WORLD_SIZE")) {
    many = {"mpirun", reader.number("OMPI_COMM_WORLD_SIZE").value_or(0)};
  } else if (reader.has("PMI_RANK")) {
    many = {"mpirun", reader.number("PMI_SIZE").value_or(0)};
  }
  if (many.count < 2) return std::nullopt;
  return many;
}

std::string first_slurm_host(const std::string& node_list) {
  const size_t end = node_list.find_first_of(",[");
  if (end == std::string::npos || node_list[end] == ',') return node_list.substr(0, end);
  const size_t digits = node_list.find_first_of(",-]", end);
  return node_list.substr(0, end) + node_list.substr(end + 1, digits - end - 1);
}

Result<Placement> find_placement(const PlacementFlags& flags, const Environment& environment) {
  Reader reader(environment);
  Placement placement = flags.rank ? from_flags(flags, reader) : from_launcher(reader);
  if (flags.world_size) placement.world_size = flags.world_size;
  if (flags.rendezvous) apply_rendezvous(*flags.rendezvous, placement, reader);
  placement.listening = flags.listening;
  if (const std::string run = named_run(flags, reader); !run.empty()) placement.run = run;
  if (reader.error()) return *reader.error();
  if (placement.world_size && placement.rank >= *placement.world_size)
    return wrong_arguments("rank " + std::to_string(placement.rank) +
                           " is not below the world size " + std::to_string(*placement.world_size));
  return placement;
}

}  // namespace rehearsal::real
