//===- SharedMemoryTransport.h - Collectives over shared memory -*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Arenas lie in shared memory, so a collective reads its peers' operands where they are, with their strides: nothing is
// staged. A start says where the operands are and that they are ready, and returns. A wait
//
//   1. waits until all of the group have started,
//   2. moves what is this rank's to move, mostly what it gets, in stages where it needs what its peers have made
//      (CollectiveStages.cpp),
//   3. waits until its peers have done so too, for then the operands' memory is its own again.
//
// Collectives know nothing of each other: any number may be in flight, over any groups, and be waited for in any order
// that is the same on all ranks.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_RUNTIME_HOST_SHAREDMEMORYTRANSPORT_H
#define ND_LIB_RUNTIME_HOST_SHAREDMEMORYTRANSPORT_H

#include "RankGroup.h"
#include "nd/Runtime/Core/Futex.h"
#include "nd/Runtime/Core/Library.h"
#include "nd/Runtime/Core/SharedMemory.h"
#include "nd/Runtime/Core/ThreadPool.h"

namespace nd::rt {

class SharedMemoryTransport : public Transport {
public:
  SharedMemoryTransport(const nd_program &program, int rank, int ranks, char *memory, bool spin)
      : program(program), layout(ranks, program), memory(memory), self(rank), spins(spin ? spinPauses : 0) {}

  bool open(std::string &error);
  void start(nd_rank &rank, const nd_collective_desc &desc, void *const *operands) override;
  void wait(nd_rank &rank, const nd_collective_desc &desc) override;

private:
  /// Ranks whose parts are combined at once.
  static constexpr int maxGroup = 4096;

  /// A collective of the program.
  struct Call {
    RankGroup group;
    CollectiveState *state = nullptr;
    int64_t operandIndex = 0; ///< of its first operand, among all of the program
    int64_t elements = 0;     ///< of the stream
    int64_t elementBytes = 0;
    bool streamed = false; ///< what it receives does not stay in the caches
    size_t sentIndex = 0;
    std::vector<void *> operands; ///< sources, then targets
    uint32_t uses = 0, stages = 0;
    bool inFlight = false;
  };

  /// Where the elements of a range are: in the source or target of a position of the group, there in the part of
  /// another, or in a slot of its staging memory.
  struct Place {
    enum Kind { Source, Target, Staging } kind;
    int position, part;
  };

  static bool isHierarchical(const RankGroup &group) { return group.nodes() > 1 && group.inside() > 1; }
  std::string check(const nd_collective_desc &desc, const RankGroup &group) const;
  uint64_t describeProgram() const;
  RankStatus &statusOf(int rank) const { return *reinterpret_cast<RankStatus *>(memory + layout.statusOffset(rank)); }
  OperandPlace &placeOf(int rank, int64_t operand) const {
    return *reinterpret_cast<OperandPlace *>(memory + layout.placeOffset(rank, operand));
  }

  void arrive(const Call &call, CollectiveState::Counter &counter, uint32_t times) const;
  bool await(nd_rank &rank, const nd_collective_desc &desc, CollectiveState::Counter &counter, uint32_t times) const;
  bool checkPeers(nd_rank &rank, const nd_collective_desc &desc) const;

  // CollectiveStages.cpp
  bool take(nd_rank &rank, const nd_collective_desc &desc);
  void reduceAll(nd_rank &rank, const nd_collective_desc &desc);
  bool reduceAllOverNodes(nd_rank &rank, const nd_collective_desc &desc);
  bool gatherOverNodes(nd_rank &rank, const nd_collective_desc &desc);
  bool scatterOverNodes(nd_rank &rank, const nd_collective_desc &desc);
  bool meet(nd_rank &rank, const nd_collective_desc &desc);
  void combine(nd_rank &rank, const nd_collective_desc &desc, const std::vector<Place> &from,
               const std::vector<Place> &to, Range range);
  void reduce(nd_rank &rank, const nd_collective_desc &desc, Place to, Range range);
  void copy(nd_rank &rank, const nd_collective_desc &desc, Place from, Place to, Range range);
  char *locate(const nd_collective_desc &desc, Place place, int32_t operand, int64_t src, int64_t dst,
               int64_t within) const;
  int64_t stagedElements(const Call &call) const;

  const nd_program &program;
  SharedMemoryLayout layout;
  char *memory;
  int self, spins;
  uint64_t signature = 0;
  std::vector<Call> calls;                           ///< by the collective's id
  std::vector<Place> sources, sums, single, targets; ///< what a stage combines; room for the largest group
};

} // namespace nd::rt

#endif // ND_LIB_RUNTIME_HOST_SHAREDMEMORYTRANSPORT_H
