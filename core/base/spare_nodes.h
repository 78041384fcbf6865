#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace rehearsal {

// Keeps the nodes of a map's erased entries for the next ones: where entries come and go all the
// time, none of them costs an allocation. Says nothing about the map: with `add` and `erase` it is
// what it would be with its own.
template <class Map>
class SpareNodes {
 public:
  using Iterator = typename Map::iterator;

  // The entry of this key, and whether it is new. The value of a new one is a default one, or what
  // was left in a node: whoever adds it sets every member.
  std::pair<Iterator, bool> add(Map& map, const typename Map::key_type& key) {
    if (nodes_.empty()) return map.try_emplace(key);
    typename Map::node_type node = std::move(nodes_.back());
    nodes_.pop_back();
    node.key() = key;
    auto added = map.insert(std::move(node));
    if (!added.inserted) nodes_.push_back(std::move(added.node));
    return {added.position, added.inserted};
  }

  // The same for an ordered map and a key that is likely to be its last.
  Iterator add_last(Map& map, const typename Map::key_type& key) {
    if (nodes_.empty()) return map.try_emplace(map.end(), key);
    typename Map::node_type node = std::move(nodes_.back());
    nodes_.pop_back();
    node.key() = key;
    return map.insert(map.end(), std::move(node));
  }

  // REQUIRES: its value owns nothing any more.
  void erase(Map& map, Iterator at) {
    if (nodes_.size() < kKeptMax) {
      nodes_.push_back(map.extract(at));
    } else {
      map.erase(at);
    }
  }

 private:
  static constexpr size_t kKeptMax = 64;
  std::vector<typename Map::node_type> nodes_;
};

}  // namespace rehearsal
