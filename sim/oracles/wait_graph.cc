#include "sim/oracles/wait_graph.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

#include "sim/oracles/words.h"

namespace rehearsal::sim {
namespace {

using UnansweredCall = WaitViews::UnansweredCall;

struct Edge {
  const UnansweredCall* call;  // null: the stack waits for what another one holds
  std::vector<size_t> to;      // stacks of that execution, or of the one that serves the call
  bool is_sure;                // it does not go on before that one does
};

struct Vertex {
  const NodeWaits* node;
  const WaitViews::Stack* stack;
  std::vector<Edge> edges;
};

class Graph {
 public:
  explicit Graph(const std::vector<NodeWaits>& nodes) : nodes_(nodes) {
    for (const NodeWaits& node : nodes)
      for (const WaitViews::Stack& stack : node.views.stacks) {
        at_[{node.worker, stack.path}].push_back(vertices_.size());
        vertices_.push_back({&node, &stack, {}});
      }
    for (Vertex& vertex : vertices_) add_edges(vertex);
  }

  std::string describe() const {
    std::string text;
    for (const NodeWaits& node : nodes_) {
      text += "  " + node.name + ":\n";
      for (const Vertex& vertex : vertices_)
        if (vertex.node == &node) text += "    " + line_of(vertex) + "\n";
      text += calls_of_nobody(node) + indented(node.views.others);
    }
    return text + cycles();
  }

  std::vector<Deadlocked> deadlock() const {
    std::vector<Deadlocked> cycle;
    for (size_t start = 0; start < vertices_.size() && cycle.empty(); ++start)
      for (const size_t vertex : cycle_from(start, /*surely=*/true))
        cycle.push_back({vertices_[vertex].node->worker, vertices_[vertex].stack->path,
                         who(vertices_[vertex])});
    return cycle;
  }

 private:
  // The call that a stack waits for has its id. Without one it may be any that its execution has
  // made: it waits for several futures, or for one that user code completes.
  void add_edges(Vertex& vertex) {
    const bool named = vertex.stack->id != CausalId{};
    for (const UnansweredCall& call : vertex.node->views.calls) {
      if (named ? call.id != vertex.stack->id : call.id.path != vertex.stack->path) continue;
      const auto served = at_.find({call.to, call.id.execution_path()});
      vertex.edges.push_back(
          {&call, served == at_.end() ? std::vector<size_t>{} : served->second, named});
    }
    if (!vertex.stack->holder) return;
    const auto holder = at_.find({vertex.node->worker, *vertex.stack->holder});
    if (holder == at_.end()) return;
    vertex.edges.push_back({nullptr, holder->second, !vertex.stack->timed});
  }

  std::string name_of(WorkerId worker) const {
    const auto found = std::find_if(nodes_.begin(), nodes_.end(), [worker](const NodeWaits& node) {
      return node.worker == worker;
    });
    return found == nodes_.end() ? "a worker that has ended" : found->name;
  }

  static std::string who(const Vertex& vertex) {
    const bool is_main = vertex.stack->label == vertex.node->name;
    return (is_main ? "main" : vertex.stack->label) + " at " + vertex.node->name;
  }

  // "push waits for a future: call 5f19dbb7#2 of add, which add at worker1 serves"
  std::string line_of(const Vertex& vertex) const {
    const WaitViews::Stack& stack = *vertex.stack;
    const bool is_main = stack.label == vertex.node->name;
    std::string line = (is_main ? "main" : stack.label) + " waits for " + stack.what;
    if (stack.id != CausalId{}) line += " " + to_string(stack.id);
    if (stack.waited) line += ", for " + in_seconds(*stack.waited);
    const char* separator = ": ";
    for (const Edge& edge : vertex.edges) {
      if (edge.call == nullptr) continue;  // The stack has said who holds it.
      line += std::exchange(separator, "; ") + call_text(*edge.call) + served_text(edge);
    }
    return line;
  }

  static std::string call_text(const UnansweredCall& call) {
    return "call " + to_string(call.id) + " of " + call.function;
  }

  std::string served_text(const Edge& edge) const {
    if (edge.to.empty()) return ", which nothing parked at " + name_of(edge.call->to) + " serves";
    return ", which " + who(vertices_[edge.to.front()]) + " serves";
  }

  // Calls whose maker is not parked: their answers are for continuations and futures.
  std::string calls_of_nobody(const NodeWaits& node) const {
    std::string text;
    for (const UnansweredCall& call : node.views.calls) {
      const bool shown = std::any_of(vertices_.begin(), vertices_.end(), [&](const Vertex& vertex) {
        return std::any_of(vertex.edges.begin(), vertex.edges.end(),
                           [&call](const Edge& edge) { return edge.call == &call; });
      });
      if (!shown) text += "    " + call_text(call) + " at " + name_of(call.to) + " has no answer\n";
    }
    return text;
  }

  static std::string indented(const std::string& lines) {
    std::string text;
    size_t begin = 0;
    while (begin < lines.size()) {
      const size_t end = std::min(lines.find('\n', begin), lines.size());
      text += "    " + lines.substr(begin, end - begin) + "\n";
      begin = end + 1;
    }
    return text;
  }

  // Each cycle once, from its first stack: a depth-first search from every stack that keeps to
  // stacks that come later.
  std::string cycles() const {
    std::string text;
    for (size_t start = 0; start < vertices_.size(); ++start) {
      const std::vector<size_t> path = cycle_from(start, /*surely=*/false);
      if (path.empty()) continue;
      text += "  a cycle: ";
      for (const size_t vertex : path) text += who(vertices_[vertex]) + " -> ";
      text += who(vertices_[start]) + "\n";
    }
    return text;
  }

  // Empty: there is none.
  std::vector<size_t> cycle_from(size_t start, bool surely) const {
    std::vector<size_t> path = {start};
    std::vector<bool> seen(vertices_.size(), false);
    return returns_to(start, surely, path, seen) ? path : std::vector<size_t>{};
  }

  bool returns_to(size_t start, bool surely, std::vector<size_t>& path,
                  std::vector<bool>& seen) const {
    for (const Edge& edge : vertices_[path.back()].edges)
      for (const size_t next : edge.to) {
        if (surely && !edge.is_sure) continue;
        if (next == start) return true;
        if (next < start || seen[next]) continue;
        seen[next] = true;
        path.push_back(next);
        if (returns_to(start, surely, path, seen)) return true;
        path.pop_back();
      }
    return false;
  }

  const std::vector<NodeWaits>& nodes_;
  std::vector<Vertex> vertices_;
  std::map<std::pair<WorkerId, Hash128>, std::vector<size_t>> at_;
};

}  // namespace

std::string describe_wait_graph(const std::vector<NodeWaits>& nodes) {
  return Graph(nodes).describe();
}

std::vector<Deadlocked> deadlock_in(const std::vector<NodeWaits>& nodes) {
  return Graph(nodes).deadlock();
}

bool runs(const LifeView& life) {
  return !life.crashed && life.result == nullptr && life.node != nullptr;
}

std::string names_of_running(const ClusterView& cluster) {
  std::string names;
  for (const LifeView& life : cluster.lives)
    if (runs(life)) names += (names.empty() ? "" : ", ") + std::string(life.name);
  return names;
}

std::vector<NodeWaits> waits_of(const ClusterView& cluster) {
  std::vector<NodeWaits> nodes;
  for (const LifeView& life : cluster.lives)
    if (runs(life)) nodes.push_back({life.id.worker, std::string(life.name), life.node->waits()});
  return nodes;
}

std::string describe_waits(const ClusterView& cluster) {
  std::string busy;
  for (const LifeView& life : cluster.lives) {
    if (!runs(life) || life.busy_turns == 0) continue;
    const bool is_main = life.busy_label == life.name;
    busy += "  " + (is_main ? "main" : std::string(life.busy_label)) + " at " +
            std::string(life.name) + " asks again and again, and never waits\n";
  }
  return busy + describe_wait_graph(waits_of(cluster));
}

}  // namespace rehearsal::sim
