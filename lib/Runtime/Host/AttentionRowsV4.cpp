//===- AttentionRowsV4.cpp - Rows of attention scores ---------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "AttentionRows.inc"

const nd::rt::AttentionRows nd::rt::attentionRowsV4 = {forwardRow, backwardRow, dotRow, scaleRow};
