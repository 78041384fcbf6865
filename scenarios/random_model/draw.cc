#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <algorithm>
#include <set>

#include "scenarios/random_model/model.h"
#include "scenarios/storm/dice.h"

namespace rehearsal::random_model {
namespace {

using storm::Dice;

// A number that is not zero; of a matrix, in an exact model, often zero.
double draw_number(Dice& dice, bool exact, bool leaf) {
  if (exact) return leaf ? static_cast<double>(dice.draw(5)) - 2 : (dice.happens(50) ? 1 : -1);
  const double size = 0.3 + static_cast<double>(dice.draw(1000)) / 1999.7;
  return dice.happens(50) ? size : -size;
}

at::Tensor draw_tensor(Dice& dice, at::IntArrayRef shape, at::ScalarType type, bool exact,
                       bool leaf) {
  const bool complex = at::isComplexType(type);
  at::Tensor tensor = at::empty(shape, complex ? at::kComplexDouble : at::kDouble);
  auto* const numbers = static_cast<double*>(tensor.data_ptr());
  const int64_t count = tensor.numel() * (complex ? 2 : 1);
  for (int64_t i = 0; i < count; ++i) numbers[i] = draw_number(dice, exact, leaf);
  return tensor.to(type);
}

at::ScalarType draw_type(Dice& dice, bool exact) {
  if (exact) return dice.happens(85) ? at::kDouble : at::kComplexDouble;
  const uint64_t drawn = dice.draw(20);
  if (drawn < 8) return at::kFloat;
  if (drawn < 13) return at::kDouble;
  if (drawn < 15) return at::kHalf;
  if (drawn < 17) return at::kBFloat16;
  return drawn < 19 ? at::kComplexFloat : at::kComplexDouble;
}

// Products of complex numbers could not be kept small.
bool suits(Operator op, at::ScalarType type) {
  const bool complex = at::isComplexType(type);
  switch (op) {
    case Operator::blend:
    case Operator::outer:
      return type == at::kFloat || type == at::kDouble;
    case Operator::activation:
    case Operator::checkpoint:
    case Operator::with_indices:
      return !complex;
    case Operator::multiply:
    case Operator::half_differentiable:
      return !complex;
    default:
      return true;
  }
}

size_t inputs_of(Operator op) {
  switch (op) {
    case Operator::add:
    case Operator::subtract:
    case Operator::multiply:
    case Operator::outer:
    case Operator::where:
    case Operator::in_place:
    case Operator::half_differentiable:
    case Operator::checkpoint:
    case Operator::detached:
      return 2;
    default:
      return 1;
  }
}

constexpr Operator kUsed[] = {Operator::add,     Operator::subtract,   Operator::multiply,
                              Operator::blend,   Operator::outer,      Operator::activation,
                              Operator::where,   Operator::rearrange,  Operator::in_place,
                              Operator::look_up, Operator::checkpoint, Operator::enlarge};
constexpr Operator kOthers[] = {Operator::half_differentiable, Operator::two_outputs,
                                Operator::without_grad, Operator::detached, Operator::with_indices};

class Drawing {
 public:
  Drawing(Seed seed, const Size& size) : seed_(seed), size_(size), dice_(dice("model", 0)) {
    model_.workers = size.workers;
    model_.exact = dice_.happens(40);
    model_.records = model_.exact && dice_.happens(50);
    model_.fast = !model_.records && dice_.happens(15);
    model_.hurries = !model_.fast && dice_.happens(20);
    has_large_ = dice_.happens(4);
    model_.leads_all = dice_.happens(40);
    losses_ = model_.fast ? 1 : 1 + dice_.draw(std::min<size_t>(size.passes, 3));
    islands_ = dice_.happens(30) ? losses_ : 1;
  }

  Model finish() {
    draw_leaves();
    const size_t first = model_.nodes.size();
    if (!model_.exact && dice_.happens(50)) model_.hub = first + dice_.draw(4);
    for (size_t i = 0; i < size_.nodes; ++i) draw_node(i);
    if (model_.hub >= model_.nodes.size()) model_.hub.reset();
    for (size_t i = 0; i < losses_; ++i) draw_loss(i);
    draw_passes();
    return std::move(model_);
  }

 private:
  [[nodiscard]] Dice dice(std::string_view purpose, size_t number) const {
    return {seed_, mix(hash_text(purpose), number)};
  }
  [[nodiscard]] uint32_t anybody(Dice& dice) const {
    return static_cast<uint32_t>(dice.draw(model_.workers));
  }

  void draw_leaves() {
    const size_t count = 1 + dice_.draw(3);
    for (size_t i = 0; i <= count; ++i) {
      Dice mine = dice("leaf", i);
      if (i == count && !mine.happens(40)) break;
      Node node{.op = i == count ? Operator::table : Operator::parameter, .worker = anybody(mine)};
      const auto type = draw_type(mine, model_.exact);
      node.type = type;
      if (node.op == Operator::table && type != at::kFloat) node.type = at::kDouble;
      const std::vector<int64_t> shape{node.op == Operator::table ? 4 : 2, 3};
      node.content = draw_tensor(mine, shape, node.type, model_.exact, /*leaf=*/true);
      add(std::move(node));
    }
  }

  void draw_node(size_t number) {
    Dice mine = dice("node", number);
    Node node{.worker = anybody(mine), .type = draw_type(mine, model_.exact)};
    node.island = mine.draw(islands_);
    node.op = draw_operator(mine, node);
    node.word = mine.word();
    if (node.op == Operator::shrink) {
      node.inputs.push_back({.node = *large_, .output = 1});
      use(*large_);
    } else if (node.op == Operator::look_up) {
      node.inputs.push_back({.node = *table_});
    } else {
      for (size_t left = inputs_of(node.op); left > 0; --left) take_input(mine, node);
    }
    draw_manner(mine, node);
    node.content = draw_tensor(mine, {2, 3}, node.type, model_.exact, /*leaf=*/false);
    if (node.op == Operator::blend || node.op == Operator::outer)
      node.matrix = draw_tensor(mine, {3, 3}, node.type, model_.exact, /*leaf=*/true);
    if (node.op == Operator::enlarge) large_ = model_.nodes.size();
    add(std::move(node));
  }

  Operator draw_operator(Dice& mine, const Node& node) {
    if (large_ && model_.hub != large_ && may_use(*large_) &&
        model_.nodes[*large_].island == node.island && mine.happens(60))
      return Operator::shrink;
    for (;;) {
      const bool other = !model_.fast && mine.happens(30);
      const Operator op =
          other ? kOthers[mine.draw(std::size(kOthers))] : kUsed[mine.draw(std::size(kUsed))];
      if (op == Operator::enlarge) {
        if (has_large_ && !large_ && !model_.fast) return op;
        continue;
      }
      if (op == Operator::look_up && !table_) continue;
      if (op == Operator::checkpoint && model_.records) continue;
      if (suits(op, node.type)) return op;
    }
  }

  // From where and in which way the node is called.
  void draw_manner(Dice& mine, Node& node) {
    const uint64_t way = mine.draw(10);
    node.way = way < 3 ? Way::sync : way < 5 ? Way::async : Way::remote;
    if (node.worker == 0 && mine.happens(50)) node.way = Way::here;
    for (uint64_t hops = mine.happens(25) ? 1 + mine.draw(2) : 0; hops > 0; --hops)
      node.via.push_back(anybody(mine));
    if (node.way == Way::here || node.op == Operator::loss) node.via.clear();
    for (Input& input : node.inputs) {
      input.by_reference = mine.happens(60);
      input.apart = mine.happens(30);
    }
  }

  [[nodiscard]] bool may_use(size_t node) const {
    if (model_.exact || is_leaf(model_.nodes[node])) return true;
    return uses_[node] < (model_.hub == node ? 3 : 2);
  }
  void use(size_t node) { ++uses_[node]; }

  // The nodes that one of this island may have as an input.
  [[nodiscard]] std::vector<size_t> candidates(size_t island) const {
    std::vector<size_t> found;
    for (size_t i = 0; i < model_.nodes.size(); ++i) {
      const Node& node = model_.nodes[i];
      const bool fits = node.op != Operator::table && node.op != Operator::loss;
      if (!fits || !may_use(i)) continue;
      if (is_leaf(node) || node.island == island) found.push_back(i);
    }
    return found;
  }

  void take_input(Dice& mine, Node& node) {
    const std::vector<size_t> all = candidates(node.island);
    size_t chosen = all[mine.draw(all.size())];
    if (mine.happens(60)) chosen = all[all.size() - 1 - mine.draw(std::min<size_t>(all.size(), 3))];
    if (model_.hub && *model_.hub < model_.nodes.size() && may_use(*model_.hub) &&
        model_.nodes[*model_.hub].island == node.island && mine.happens(40))
      chosen = *model_.hub;
    Input input{.node = chosen};
    const bool from_either = model_.hub != chosen;  // a hub's three uses are of its first output
    if (model_.nodes[chosen].op == Operator::two_outputs && from_either)
      input.output = mine.draw(2);
    node.inputs.push_back(input);
    use(chosen);
  }

  // A loss depends on a parameter in any case; in mode FAST on all that nobody else uses.
  void draw_loss(size_t number) {
    Dice mine = dice("loss", number);
    Node node{.op = Operator::loss, .worker = anybody(mine), .island = number % islands_};
    const size_t parameters = count_parameters();
    node.inputs.push_back({.node = mine.draw(parameters)});
    for (uint64_t left = 1 + mine.draw(2); left > 0 && !model_.fast; --left) take_input(mine, node);
    for (size_t i = 0; i < model_.nodes.size() && model_.fast; ++i)
      if (!is_leaf(model_.nodes[i]) && uses_[i] == 0) node.inputs.push_back({.node = i});
    draw_manner(mine, node);
    node.content = draw_tensor(mine, {2, 3}, at::kDouble, model_.exact, /*leaf=*/false);
    first_loss_ = number == 0 ? model_.nodes.size() : first_loss_;
    add(std::move(node));
  }

  [[nodiscard]] size_t count_parameters() const {
    size_t count = 0;
    while (count < model_.nodes.size() && model_.nodes[count].op == Operator::parameter) ++count;
    return count;
  }

  void add(Node node) {
    if (node.op == Operator::table) table_ = model_.nodes.size();
    model_.nodes.push_back(std::move(node));
    uses_.push_back(0);
  }

  void draw_passes() {
    const size_t count = model_.fast ? 1 : size_.passes;
    for (size_t i = 0; i < count; ++i) {
      Dice mine = dice("pass", i);
      Pass pass{.start = static_cast<Start>(mine.draw(4)), .worker = anybody(mine)};
      for (size_t loss = 0; loss < losses_; ++loss)
        if (loss == i % losses_ || mine.happens(30)) pass.losses.push_back(first_loss_ + loss);
      if (pass.start == Start::at_owner && pass.losses.size() > 1) pass.start = Start::of_several;
      // Roots that are fetched again would leave the first ones unused.
      const bool fetches = pass.start == Start::of_several || pass.start == Start::served;
      pass.hasty = mine.happens(10) && !(model_.fast && fetches);
      model_.passes.push_back(std::move(pass));
    }
    if (model_.records) {
      model_.passes.back().create_graph = true;
      Pass penalty{.start = dice_.happens(50) ? Start::here : Start::of_several};
      model_.passes.push_back(std::move(penalty));
    }
    for (size_t i = 0; i < model_.passes.size(); ++i)
      model_.passes[i].retain_graph =
          shares_with_later(i) || model_.passes[i].hasty || dice_.happens(20);
  }

  // Whether a later pass goes over a part of the same graph.
  [[nodiscard]] bool shares_with_later(size_t pass) const {
    if (model_.records) return true;
    const std::set<size_t> own = graph_of(model_.passes[pass]);
    for (size_t later = pass + 1; later < model_.passes.size(); ++later)
      for (const size_t node : graph_of(model_.passes[later]))
        if (own.contains(node)) return true;
    return false;
  }

  [[nodiscard]] std::set<size_t> graph_of(const Pass& pass) const {
    std::set<size_t> found;
    std::vector<size_t> next = pass.losses;
    while (!next.empty()) {
      const size_t node = next.back();
      next.pop_back();
      if (is_leaf(model_.nodes[node]) || !found.insert(node).second) continue;
      for (const Input& input : model_.nodes[node].inputs) next.push_back(input.node);
    }
    return found;
  }

  const Seed seed_;
  const Size size_;
  Dice dice_;
  Model model_;
  bool has_large_ = false;
  size_t losses_ = 1;
  size_t islands_ = 1;
  size_t first_loss_ = 0;
  std::optional<size_t> table_;
  std::optional<size_t> large_;
  std::vector<uint32_t> uses_;
};

}  // namespace

std::string_view name_of(Operator op) {
  constexpr std::string_view kNames[] = {
      "parameter",   "table",      "add",     "subtract",     "multiply", "blend",
      "outer",       "activation", "where",   "rearrange",    "in place", "half differentiable",
      "two outputs", "checkpoint", "look up", "without grad", "detached", "with indices",
      "enlarge",     "shrink",     "loss"};
  return kNames[static_cast<size_t>(op)];
}

std::string worker_name(uint32_t worker) {
  return worker == 0 ? "leader" : "worker" + std::to_string(worker - 1);
}

std::string text_of(const Model& model, size_t node) {
  const Node& of = model.nodes[node];
  return "node " + std::to_string(node) + " (" + std::string(name_of(of.op)) + ", " +
         std::string(at::toString(of.type)) + ", at " + worker_name(of.worker) + ")";
}

std::vector<size_t> leaves_of(const Model& model, uint32_t worker) {
  std::vector<size_t> found;
  for (size_t i = 0; i < model.nodes.size(); ++i)
    if (is_leaf(model.nodes[i]) && model.nodes[i].worker == worker) found.push_back(i);
  return found;
}

Model draw_model(Seed seed, const Size& size) { return Drawing(seed, size).finish(); }

}  // namespace rehearsal::random_model
