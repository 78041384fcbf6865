#include "tests/worlds/two_processes.h"

#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>

#include "real_net/worker/real_node.h"
#include "sim/cluster.h"

namespace rehearsal::test {
namespace {

void write_text(int file, const std::string& text) {
  size_t written = 0;
  while (written < text.size()) {
    const ssize_t count = ::write(file, text.data() + written, text.size() - written);
    if (count <= 0) throw std::runtime_error("a pipe cannot be written");
    written += static_cast<size_t>(count);
  }
}

std::string read_line(int file) {
  std::string line;
  for (char letter = 0; ::read(file, &letter, 1) == 1 && letter != '\n';) line += letter;
  return line;
}

std::vector<std::string> read_all_lines(int file) {
  std::vector<std::string> lines;
  for (std::string line = read_line(file); !line.empty(); line = read_line(file))
    lines.push_back(line);
  return lines;
}

// One worker of the pair; ports are exchanged through the two pipe ends.
Status run_one(const Program& program, WorkerId id, StrandTrace& trace, int to_peer,
               int from_peer) {
  real::RealNodeOptions options;
  options.node.id = id;
  options.node.incarnation = incarnation_of(id, 1000);
  options.node.names = program.names();
  options.node.join_timeout = std::chrono::seconds(20);
  options.trace = &trace;
  real::RealNode node(options, program);
  write_text(to_peer, std::to_string(node.address().port) + "\n");
  const int port = std::stoi(read_line(from_peer));
  node.set_address(WorkerId{1 - id.value},
                   {.host = "127.0.0.1", .port = static_cast<uint16_t>(port)});
  return node.run();
}

int run_child(const Program& program, int to_parent, int from_parent) {
  StrandTrace trace;
  const Status status = run_one(program, WorkerId{0}, trace, to_parent, from_parent);
  if (!status.ok()) return 1;
  for (const std::string& line : trace.lines_of(WorkerId{0})) write_text(to_parent, line + "\n");
  return 0;
}

}  // namespace

std::vector<std::vector<std::string>> traces_over_tcp(const Program& program) {
  int to_child[2];
  int to_parent[2];
  if (::pipe(to_child) != 0 || ::pipe(to_parent) != 0) throw std::runtime_error("no pipe");
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(to_child[1]);
    ::close(to_parent[0]);
    ::_exit(run_child(program, to_parent[1], to_child[0]));
  }
  ::close(to_child[0]);
  ::close(to_parent[1]);
  StrandTrace trace;
  const Status status = run_one(program, WorkerId{1}, trace, to_child[1], to_parent[0]);
  std::vector<std::string> child_lines = read_all_lines(to_parent[0]);
  ::close(to_child[1]);
  ::close(to_parent[0]);
  int child_status = 0;
  ::waitpid(child, &child_status, 0);
  if (!status.ok()) throw RpcError(status.error());
  if (child_status != 0) throw std::runtime_error("worker 0 failed");
  return {std::move(child_lines), trace.lines_of(WorkerId{1})};
}

std::vector<std::vector<std::string>> traces_in_simulator(const Program& program) {
  StrandTrace trace;
  sim::ClusterOptions options;
  options.faults = sim::FaultLevel::none;
  options.traces = {&trace};
  sim::Cluster cluster(Seed{1}, program, options);
  cluster.run();
  return {trace.lines_of(WorkerId{0}), trace.lines_of(WorkerId{1})};
}

}  // namespace rehearsal::test
